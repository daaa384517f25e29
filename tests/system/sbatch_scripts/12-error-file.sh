#!/bin/bash
#SBATCH -o streams.out
#SBATCH -e streams.err
echo "streams: to stdout"
echo "streams: to stderr" >&2
