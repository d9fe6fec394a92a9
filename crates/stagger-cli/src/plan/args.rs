use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::export::Export;
use crate::plot::Spacing;
use crate::policy_args::PolicyArgs;

/// Show the delays that a policy gives, as figures and as a picture
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Forecasts count waiting only; what the attempts take comes on top.
The clients that are drawn, for the picture and for --sample, are those of --seed, which is 1 unless given.
Exit status: 0; 1 if drawn delays contradict the forecast; 2 for a command line that makes no sense.")]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    /// How many retries to show [default: all, but at most 20, and 10 if there is no end to them]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200), help_heading = "Plan")]
    pub(crate) retries: Option<u32>,

    /// List the named policies that --policy knows, and whose they are; with --json, the policies themselves too
    #[arg(long, conflicts_with_all = ["retries", "sample", "svg"], help_heading = "Plan")]
    pub(crate) profiles: bool,

    /// Draw the delays of K clients as well, and say whether they span their intervals
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Plan")]
    pub(crate) sample: Option<u32>,

    /// Print figures as JSON (schema stagger.plan/1); with --sample, every drawn delay
    #[arg(long, help_heading = "Plan")]
    pub(crate) json: bool,

    /// Write the pictures as an SVG file; '-' is standard output, which then gets nothing else
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath, help_heading = "Plan")]
    pub(crate) svg: Option<PathBuf>,

    /// Print the policy as the configuration of another system; what it cannot say goes to standard error
    #[arg(
        long,
        value_enum,
        value_name = "SYSTEM",
        conflicts_with_all = ["retries", "profiles", "sample", "json", "svg"],
        help_heading = "Plan"
    )]
    pub(crate) export: Option<Export>,

    /// How the axis of delays is spaced in pictures
    #[arg(long, value_enum, default_value_t, help_heading = "Plan")]
    pub(crate) scale: AxisScale,
}

/// How the axis of delays is spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AxisScale {
    /// Equal differences take equal room
    #[default]
    Linear,
    /// Equal ratios take equal room: short delays are seen beside long ones
    Log,
}

impl From<AxisScale> for Spacing {
    fn from(scale: AxisScale) -> Self {
        match scale {
            AxisScale::Linear => Self::Linear,
            AxisScale::Log => Self::Log,
        }
    }
}
