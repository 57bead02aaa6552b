"""Benchmarks that compare: each figure stands beside what a bare peer needs for the same, now.

A figure of one machine at one time says little, a ratio of two that were measured in turns says
much; so ratios are what the goals are about. Run by ``python -m bench``; nothing here is shipped,
and no test depends on how long anything took.
"""
