#!/bin/bash
# The reward is 0 until the checker has said otherwise, and again 0 when it has not.
mkdir -p /logs/verifier
echo 0 > /logs/verifier/reward.txt
if python3 -I -S -B /tests/check.py; then reward=1; else reward=0; fi
echo "$reward" > /logs/verifier/reward.txt
