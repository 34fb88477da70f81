"""The estimate: pure functions of numbers and numpy columns. No files, network, clock or UI.

errors     errors a user can cause and fix
numeric    one number or a column of them: every formula of core takes either and returns
           the same
units      units

    errors     errors a user can cause and fix
    numeric    one number or a column of them: every formula of core takes either and returns
               the same
    units      units
"""
