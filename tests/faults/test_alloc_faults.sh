#!/usr/bin/env bash
# Runs whole commands while one allocation fails: see faults.py.
exec bash "$(dirname "$0")/run.sh" alloc
