"""The estimate: pure functions of numbers and numpy columns. No files, network, clock or UI.

errors   errors that a user can cause and fix
numeric  numbers and columns: every formula of core takes either and returns what it was
         given
units    inside core a quantity is a plain number in the unit that its name ends with
"""
