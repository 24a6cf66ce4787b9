#!/usr/bin/env bash
# Runs whole commands while one system call fails: see faults.py.
exec bash "$(dirname "$0")/run.sh" calls
