//! What goes wrong for users of such programs, each with a shell script that stands in for the agent or the gate.
