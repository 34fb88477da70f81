"""The files that launch a plan.

command  runcast export: the files that launch a plan, for the user's own stack
export   the work of runcast export: a plan and target names in, files out
files    what the Launch page lists: kinds of files, their texts, and a zip
job      a plan as the job that its launch files describe: the planner's decisions, and
         the header of the files
page     the Launch page: the files that start a plan, for the user's own stack
stages   launch files of a programme: one folder a stage, and a script that starts them
words    what to check when a launched job goes wrong, with the plan's own figures
"""
