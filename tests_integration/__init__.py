"""Tests against other libraries; each needs the extra of its library. Not collected by default."""
