"""The rules, one test for each sentence that can be played."""
