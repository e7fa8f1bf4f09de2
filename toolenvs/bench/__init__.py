"""Benches: what a sandboxed call costs (``step``) and what a barrier costs (``stepping``)."""
