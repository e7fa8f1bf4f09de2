"""Benches: what a call, a worker with many, walls, and a barrier cost."""
