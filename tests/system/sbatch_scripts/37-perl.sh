#!/usr/bin/perl
#SBATCH --ntasks=2
use strict;
print "perl: $ENV{SLURM_NTASKS} tasks on $ENV{SLURM_JOB_NUM_NODES} node\n";
