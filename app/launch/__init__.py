"""The files that launch a plan.

command  runcast export: the files that launch a plan, in the reader's own stack
export   what runcast export does: a plan and the names of targets in, files out
files    what the Launch & export page lists: kinds of files, their texts, one archive of
         them
job      a plan as the job of its launch files: what the planner decided, and what their
         headers say
page     the Launch & export page: the files that start a plan in the reader's own stack
words    what to look at when a job that was launched goes wrong, with the plan's own
         figures
"""
