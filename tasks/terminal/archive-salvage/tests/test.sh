#!/bin/bash
# The reward is 0 until the checker has said otherwise.
mkdir -p /logs/verifier
echo 0 > /logs/verifier/reward.txt
if python3 -I -S -B /tests/check.py; then echo 1 > /logs/verifier/reward.txt; fi
