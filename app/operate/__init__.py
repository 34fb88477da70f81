"""Running a server: checks of the installation, backup and restore.

backup_command  runcast backup and runcast restore: everything that an installation keeps,
                in one archive
command         runcast doctor: whether this installation is well, and what to do where it
                is not
data            what this installation keeps: the store, calibrations, price books, and room
                for more
doctor          what runcast doctor finds: each thing looked at, what it is, and what to do
                about it
document        what runcast doctor found, described once: a line a thing, then what to do
finding         one thing that runcast doctor looked at, and the states that it can be in
installed       what is installed: Runcast, Python, and each package that Runcast asks for
                beside its pin
prices          prices: how old, how many, from where, and which sources fail
readiness       whether this installation can answer: its tables, its prices, its store
settings        checks for risky server settings: open addresses, leaked details, trusted
                headers
tools           optional tools: which are installed, in which version, and their purpose
"""
