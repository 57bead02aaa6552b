"""What is wrong with a node, and what to do: facts are collected, then judged by pure checks."""
