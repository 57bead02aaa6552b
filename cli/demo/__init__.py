"""The whole product on one machine: exporters and an adapter on loopback, and nothing else."""

from cli.demo.run import run_demo

__all__ = ["run_demo"]
