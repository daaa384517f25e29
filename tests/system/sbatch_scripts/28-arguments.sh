#!/bin/bash
#SBATCH --output=%x.%u.out
echo "arguments: $# <$1> <$2> $$ $(echo in a shell)" | sed 's/ [0-9]* in/ in/'
