"""One module per command: take the options, run one stage, hand its report to the ui."""
