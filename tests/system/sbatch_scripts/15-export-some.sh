#!/bin/bash
#SBATCH --export=GREETING=hello,TEST_COLOUR
echo "some: $GREETING $TEST_COLOUR"
