//! The command line.

use clap::Parser;

use crate::case::Section;
use crate::report::Format;
use crate::timing::Effort;

/// Measures stagger, hand-written floors and other retry crates in one run.
///
/// To include the other crates, build with `--features peers`.
#[derive(Debug, Parser)]
#[command(name = "stagger-bench", version)]
pub(crate) struct Options {
    /// Measure only this section (can be repeated).
    #[arg(long, value_name = "A|B|C|D|E|F|G|H|J")]
    section: Vec<Section>,

    /// Run fewer and shorter rounds: a rough comparison in seconds, not figures to quote.
    #[arg(long)]
    quick: bool,

    /// Skip instruction and allocation counts, which need valgrind.
    #[arg(long)]
    no_callgrind: bool,

    /// Print the report as JSON.
    #[arg(long, conflicts_with = "markdown")]
    json: bool,

    /// Print the report as Markdown tables.
    #[arg(long)]
    markdown: bool,

    /// Run a single case. Used by this program to run itself under callgrind.
    #[arg(long, hide = true, requires = "iterations")]
    pub(crate) run: Option<String>,

    /// Number of iterations for --run.
    #[arg(long, hide = true)]
    pub(crate) iterations: Option<u64>,

    /// Set up a single case and print the bytes of memory that it takes.
    #[arg(long, hide = true)]
    pub(crate) measure_memory: Option<String>,
}

impl Options {
    pub(crate) fn wants(&self, section: Section) -> bool {
        self.section.is_empty() || self.section.contains(&section)
    }

    pub(crate) const fn effort(&self) -> Effort {
        if self.quick { Effort::Quick } else { Effort::Thorough }
    }

    pub(crate) const fn counts_instructions(&self) -> bool {
        !self.no_callgrind
    }

    pub(crate) const fn format(&self) -> Format {
        if self.json {
            Format::Json
        } else if self.markdown {
            Format::Markdown
        } else {
            Format::Text
        }
    }
}
