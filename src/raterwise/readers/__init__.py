"""Readers as a yardstick: does the model differ from a reader as much as readers do?"""
