"""Audits: what is achievable today, and is the instrument still calibrated? (SOURCES S1)"""
