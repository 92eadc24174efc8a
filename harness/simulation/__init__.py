"""Simulated agents of known ability behind an OpenAI-compatible service: for demonstrations and benchmarks.

What is simulated is the model and nothing else. It says nothing about any real agent.
"""
