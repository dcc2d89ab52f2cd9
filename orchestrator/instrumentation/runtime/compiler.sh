#!/bin/sh
# Runs a compiler so that what it builds counts its effort. Written by: orchestrator effort compiler
@environment@
link=no
for argument; do
    case $argument in
    -c | -S | -E | -M | -MM | -fsyntax-only | -print-* | --print-* | -dump* | --version | --help* | -show* | --showme* | -compile?info | -link?info)
        exec @compiler@ "$@" @flags@
        ;;
    -*) ;;
    *) link=yes ;;
    esac
done
# Without a file to link there is nothing to add: compilers are asked for their version in many ways.
test $link = yes || exec @compiler@ "$@"
exec @compiler@ "$@" @flags@ @libraries@
