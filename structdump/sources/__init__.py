"""Where artifacts come from: live hooks, dump directories, trace logs."""
