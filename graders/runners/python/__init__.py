"""The runners of Python's tests, as they lie in the sandbox that grades: sealed_report.py says what they are for."""
