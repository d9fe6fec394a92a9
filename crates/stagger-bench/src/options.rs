//! The command line.

use clap::Parser;

use crate::case::Section;
use crate::report::Format;
use crate::timing::Effort;

/// Measures stagger, hand-written floors and other retry crates in one run.
///
/// The other crates take part when this program is built with `--features peers`.
#[derive(Debug, Parser)]
#[command(name = "stagger-bench", version)]
pub(crate) struct Options {
    /// Only this section (may be given several times).
    #[arg(long, value_name = "A|B|C|D|E|F|G|H|J")]
    section: Vec<Section>,

    /// Fewer and shorter rounds: the order of things in seconds, not figures to quote.
    #[arg(long)]
    quick: bool,

    /// Count no instructions and no allocations (both need valgrind).
    #[arg(long)]
    no_callgrind: bool,

    /// Print one JSON document.
    #[arg(long, conflicts_with = "markdown")]
    json: bool,

    /// Print Markdown tables.
    #[arg(long)]
    markdown: bool,

    /// Run one case and nothing else: what this program asks of itself under callgrind.
    #[arg(long, hide = true, requires = "iterations")]
    pub(crate) run: Option<String>,

    /// How often to run it.
    #[arg(long, hide = true)]
    pub(crate) iterations: Option<u64>,

    /// Set up one case, print the bytes of memory that this took, and nothing else.
    #[arg(long, hide = true)]
    pub(crate) weigh: Option<String>,
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
