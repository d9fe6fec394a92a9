//! The advice as a page.

use stagger_core::text::Compact;
use stagger_lint::advise::{Advice, Candidate, ParetoFront};
use stagger_report::page::{Front, delays, frame, headings};
use stagger_sim::outage::DefaultGuards;
use stagger_terminal::output::error::CliError;
use stagger_terminal::plot::svg::{escaped, inline};
use stagger_terminal::plot::{Axis, Figure, Hue, Point, Series, Shape, Unit};

use super::json::{rust, toml};
use super::report::{self, figures};

/// Returns the advice as one self-contained page. `json` is the same advice as a document, and `command` the command
/// line that reproduces it.
pub(super) fn page(advice: &Advice, json: &str, seed: u64, command: &str) -> Result<String, CliError> {
    let mut out = String::new();
    out.extend(advice.front().map(front_section));
    if let Some(policy) = advice.policy() {
        let pictures = inline(&delays(&[("the recommended policy", policy)]));
        out.push_str(&format!(
            "<section>\n<h2>Delays</h2>\n<p><code>{}</code></p>\n{pictures}</section>\n",
            escaped(&policy.to_string())
        ));
    }
    for text in report::warnings(advice) {
        out.push_str(&format!("<p>{}.</p>\n", escaped(&text)));
    }
    out.push_str("<section>\n<h2>Reasons</h2>\n<dl>\n");
    for reason in advice.reasons() {
        let answer = reason.answer.as_deref().unwrap_or("not specified");
        let (question, answer) = (escaped(reason.question.name()), escaped(answer));
        out.push_str(&format!("<dt>{question} {answer}</dt><dd>{}</dd>\n", escaped(&reason.conclusion)));
    }
    out.push_str("</dl>\n");
    out.extend(advice.guard_trial().map(|trial| format!("<p>{}.</p>\n", escaped(report::guard_text(trial).trim()))));
    out.push_str("</section>\n");
    if let Some(policy) = advice.policy() {
        out.push_str("<section>\n<h2>To use it</h2>\n");
        let code = |title: &str, text: &str| {
            format!("<h3>{title}</h3>\n<pre tabindex=\"0\">{}</pre>\n", escaped(text.trim_end()))
        };
        out.push_str(&code("TOML", &toml(policy, advice.guards())?));
        out.extend(rust(policy, advice.guards()).map(|text| code("Rust", &text)));
        let commands = report::commands_shown(advice, policy, seed);
        if !commands.is_empty() {
            out.push_str(&code("Simulated by", &commands.join("\n")));
        }
        out.push_str("</section>\n");
    }
    let answer = [answer(advice)];
    let front = Front { heading: "Retries, advised", answer: &answer, scenario: &scenario(advice) };
    Ok(frame(&front, &out, json, command))
}

/// Returns the advice in a sentence.
fn answer(advice: &Advice) -> String {
    let mut text = report::verdict(advice).trim_end_matches(':').to_owned();
    text[..1].make_ascii_uppercase();
    if let Some(policy) = advice.policy() {
        text = text.replace("this policy", &policy.to_string());
    }
    if let Some(front) = advice.front() {
        let best = &front.best().predicted;
        let [peak, recovery, attempts, _] = figures(best);
        let worst = match front.best().by_outage.len() {
            1 => String::new(),
            several => format!(" (the worst of {several} outages)"),
        };
        let back = match best.recovery {
            Some(_) => format!("99% are back {recovery} after the outage"),
            None => "fewer than 99% come back".to_owned(),
        };
        text.push_str(&format!(
            ": after a mass disconnect {peak} attempts arrive in the busiest second, each client makes {attempts} on \
             average, and {back}{worst}"
        ));
    }
    if advice.guards() != DefaultGuards::None {
        text.push_str(&format!(", guarded in each process by {}", advice.guards().name()));
    }
    text
}

fn scenario(advice: &Advice) -> String {
    let answered = advice.reasons().iter().filter_map(|reason| {
        let answer = reason.answer.as_deref()?;
        Some(format!("{} {answer}", reason.question.name()))
    });
    let answered: Vec<String> = answered.collect();
    if answered.is_empty() { "advice without any answer".to_owned() } else { answered.join(", ") }
}

/// Returns the section of the policies that compete: their picture, and their figures.
fn front_section(front: &ParetoFront) -> String {
    let point = |candidate: &Candidate| {
        let recovery = candidate.predicted.recovery?;
        Some(Point { x: recovery.as_secs_f64(), y: candidate.predicted.peak_second })
    };
    let best = point(front.best()).into_iter().collect();
    let others = front.candidates.iter().filter(|candidate| *candidate != front.best()).filter_map(point).collect();
    let figure = Figure {
        title: "Peak by recovery".to_owned(),
        description:
            "The highest number of attempts in one second of each policy, by the time in which 99% of the clients \
                      are back."
                .to_owned(),
        x: Axis::new("99% back after", Unit::Seconds).including(0.0),
        y: Axis::new("peak in a second", Unit::Count).including(0.0),
        series: vec![
            Series::light("others that are better in some figure", Hue::nth(0), Shape::Points(others)),
            Series::strong("recommended", Hue::VERMILION, Shape::Points(best)),
        ],
    };
    let mut out = format!(
        "<section>\n<h2>Why this one</h2>\n{}<p class=\"quiet\">{} policies were tried with {} clients; full recovery \
         takes at least {:.1} after the outage. {}.</p>\n",
        inline(&[figure]),
        front.tried_policies,
        Unit::Count.label(front.simulated_clients as f64),
        Compact(front.min_recovery_time),
        escaped(&front.searched)
    );
    let heads = ["peak in a second", "99% back after", "attempts per client", "recovered"];
    out.push_str(&format!("<table class=\"key\">\n{}<tbody>\n", headings(["policy"].into_iter().chain(heads))));
    for candidate in &front.candidates {
        let class = if candidate == front.best() { " class=\"best\"" } else { "" };
        let policy = escaped(&report::settings(&candidate.policy));
        let cells: String = heads
            .iter()
            .zip(figures(&candidate.predicted))
            .map(|(head, text)| format!("<td{class} data-head=\"{head}\">{}</td>", escaped(&text)))
            .collect();
        out.push_str(&format!("<tr><th scope=\"row\"><code>{policy}</code></th>{cells}</tr>\n"));
    }
    out + "</tbody>\n</table>\n</section>\n"
}
