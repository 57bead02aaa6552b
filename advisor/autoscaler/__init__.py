"""What the HorizontalPodAutoscaler controller of Kubernetes 1.36 computes, step by step.

Own code to the controller's rules, with its arithmetic: whole thousandths, divisions that
truncate, int32 replicas. Every intermediate result is data, so that people can follow it.
"""
