"""The calls that every pass makes, without what the binding does around each of them.

The binding looks the function up, makes a new structure and decodes text each time, which is most
of what a call costs: a dense node makes four hundred of them every second. Here each function is
looked up once, and what it writes to is made once. The functions, structures and error codes are
the binding's own.
"""

import ctypes
import struct
from collections.abc import Callable
from typing import Final

import pynvml
from pynvml import NVMLError

from exporter.nvml.real.fields import Field, FieldQuestion, Numbers

Handle = pynvml.c_nvmlDevice_t

_UUID_BYTES: Final = 96
_ATTRIBUTES: Final = struct.Struct("@8IQ")
_MEMORY: Final = struct.Struct("@I4Q")


class _Functions(dict[str, Callable[..., int]]):
    """The library's functions by name, each looked up when it is first called."""

    def __missing__(self, name: str) -> Callable[..., int]:
        function = pynvml._nvmlGetFunctionPointer(name)  # noqa: SLF001 - there is no other way
        self[name] = function
        return function


class Calls:
    """Calls into the library. One thread at a time may use an instance of it.

    Every method raises ``NVMLError`` for a call that failed, and for one that the library lacks.
    """

    def __init__(self) -> None:
        self._functions = _Functions()
        self._number, self._other_number = ctypes.c_uint(), ctypes.c_uint()
        self._number_at = ctypes.byref(self._number)
        self._other_number_at = ctypes.byref(self._other_number)
        self._long = ctypes.c_ulonglong()
        self._long_at = ctypes.byref(self._long)
        self._text = ctypes.create_string_buffer(_UUID_BYTES)
        self._attributes = pynvml.c_nvmlDeviceAttributes()
        self._attributes_at = ctypes.byref(self._attributes)
        self._memory = pynvml.c_nvmlMemory_v2_t()
        self._memory_at = ctypes.byref(self._memory)
        self._questions: dict[tuple[Field, ...], FieldQuestion] = {}

    def gpu(self, index: int) -> Handle:
        """Return the handle of the GPU at an index."""
        handle = Handle()
        call = self._functions["nvmlDeviceGetHandleByIndex_v2"]
        if code := call(index, ctypes.byref(handle)):
            raise NVMLError(code)
        return handle

    def instance(self, gpu: Handle, index: int) -> Handle:
        """Return the handle of the MIG instance at an index of its GPU."""
        handle = Handle()
        call = self._functions["nvmlDeviceGetMigDeviceHandleByIndex"]
        if code := call(gpu, index, ctypes.byref(handle)):
            raise NVMLError(code)
        return handle

    def uuid(self, handle: Handle) -> bytes:
        """Return the uuid, undecoded."""
        if code := self._functions["nvmlDeviceGetUUID"](handle, self._text, _UUID_BYTES):
            raise NVMLError(code)
        return self._text.value

    def mig_modes(self, handle: Handle) -> tuple[int, int]:
        """Return the current and the pending MIG mode."""
        return self.two_numbers("nvmlDeviceGetMigMode", handle)

    def attributes(self, instance: Handle) -> tuple[int, ...]:
        """Return SMs, engines, slices and memory of a MIG instance, in the header's order."""
        if code := self._functions["nvmlDeviceGetAttributes_v2"](instance, self._attributes_at):
            raise NVMLError(code)
        return _ATTRIBUTES.unpack_from(self._attributes)

    def memory(self, handle: Handle) -> tuple[int, int, int, int]:
        """Return total, reserved, free and used bytes by version 2 of the structure."""
        self._memory.version = pynvml.nvmlMemory_v2
        if code := self._functions["nvmlDeviceGetMemoryInfo_v2"](handle, self._memory_at):
            raise NVMLError(code)
        _, total, reserved, free, used = _MEMORY.unpack_from(self._memory)
        return total, reserved, free, used

    def number(self, function: str, handle: Handle, *arguments: int) -> int:
        """Return what a function of a handle and numbers writes into an unsigned int."""
        if code := self._functions[function](handle, *arguments, self._number_at):
            raise NVMLError(code)
        return self._number.value

    def two_numbers(self, function: str, handle: Handle) -> tuple[int, int]:
        """Return what a function of a handle writes into two unsigned ints."""
        if code := self._functions[function](handle, self._number_at, self._other_number_at):
            raise NVMLError(code)
        return self._number.value, self._other_number.value

    def long_number(self, function: str, handle: Handle) -> int:
        """Return what a function of a handle writes into an unsigned long long."""
        if code := self._functions[function](handle, self._long_at):
            raise NVMLError(code)
        return self._long.value

    def fields(self, handle: Handle, *fields: Field) -> Numbers:
        """Return the values of fields by (NVML_FI_*, scope), in one call.

        None for a field that this board, driver or moment does not answer; what answers none of
        them raises.
        """
        question = self._questions.get(fields)
        if question is None:
            question = self._questions[fields] = FieldQuestion(fields)
        call = self._functions["nvmlDeviceGetFieldValues"]
        if code := call(handle, question.count, question.at):
            raise NVMLError(code)
        return question.numbers()

    def call(self, function: str, *arguments: object) -> None:
        """Call any function."""
        if code := self._functions[function](*arguments):
            raise NVMLError(code)

    def fits(self, function: str, *arguments: object) -> bool:
        """Call a function that fills a buffer; tell whether all that it has to say fits into it."""
        code = self._functions[function](*arguments)
        if code and code != pynvml.NVML_ERROR_INSUFFICIENT_SIZE:
            raise NVMLError(code)
        return not code
