use clap::Args;

/// Show a page in the browser on which two policies race against each other
#[derive(Args, Clone, Copy, Debug)]
#[command(
    before_help = "\
Examples:
  stagger serve
  stagger serve --port 8080 --no-open",
    after_help = "\
Prints the address of the page, and serves until Ctrl-C. Clients wait, attempt, are rejected and connect as `stagger simulate` computes \
it for the same seed. The address bar of the browser holds both policies and all settings, so an address can be kept or sent.

Listens on 127.0.0.1 only; scripts and forms of other sites are refused. Reads and writes no files.

Exit status: 2 for a usage error; 125 if the port is in use; 130 after Ctrl-C, 143 after SIGTERM."
)]
pub struct ServeArgs {
    /// Port to listen on; 0 for any free one
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Serve")]
    pub(super) port: u16,

    /// Do not open the browser
    #[arg(long, help_heading = "Serve")]
    pub(super) no_open: bool,
}
