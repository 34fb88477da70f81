"""Running a server: checks of the installation, backup and restore.

backup_command  runcast backup and runcast restore: everything that an installation keeps,
                in one archive
command         runcast doctor: whether this installation is well, and what to do where it
                is not
data            what this installation keeps: the store, calibrations, price books, and room
                for more
doctor          all findings of runcast doctor, their summary, and both as a table and as JSON
finding         one thing that runcast doctor looked at, and the states that it can be in
installed       the versions of Runcast, Python and the required packages against their pins
prices          prices: how old, how many, from where, and which sources fail
readiness       whether this installation can answer: its tables, its prices, its store
serve_command   runcast serve: the page from any installation
settings        checks for risky server settings: open addresses, leaked details, trusted
                headers
tools           optional tools: which are installed, in which version, and their purpose
"""
