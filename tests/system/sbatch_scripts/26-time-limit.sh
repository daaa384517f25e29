#!/bin/bash
#SBATCH --time=0:01
echo "limit: started"
sleep 600
