"""What an audit showed: judged, counted, compared and put into words."""
