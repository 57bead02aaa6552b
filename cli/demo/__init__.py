"""The main job on one machine: exporters and an adapter on loopback, nothing else needed."""

from cli.demo.run import run_demo

__all__ = ["run_demo"]
