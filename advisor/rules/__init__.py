"""What is wrong with rules and autoscalers, seen before they run: the checks of ``lint``.

Pure: files come as texts, and what a backend knows as numbers that somebody else has asked for.
"""
