"""What a chosen plan has to pass besides its numbers, and what choosing it does to them.

launchable  why no launch file takes a plan: asked of the recipes that would write it
lead        what is expected of a plan without the part of its lead that is luck
"""
