"""The tests, and the scripts that compare more than a test run has time for."""
