"""Adapters to other libraries; each module needs the extra that its first lines name."""
