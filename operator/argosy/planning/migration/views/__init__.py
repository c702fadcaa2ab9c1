"""The part of a pool that each server follows from alone, so that one that did not change is as it was before."""
