use std::io::{self, BufRead, Write};

use stagger_lint::advise::{Answers, Question};

use stagger_terminal::output::error::CliError;

/// Prompts for each value that is missing and can still change the result. An empty line skips a question; the end of
/// the input skips the remaining ones.
pub(super) fn prompt(known: Answers, input: &mut impl BufRead, out: &mut impl Write) -> Result<Answers, CliError> {
    prompt_until_done(known, input, out)
        .map_err(|error| CliError::io("cannot prompt; give the values as flags, with --no-input", error))
}

fn prompt_until_done(mut known: Answers, input: &mut impl BufRead, out: &mut impl Write) -> io::Result<Answers> {
    for question in Question::ALL {
        // An earlier answer may have made the question irrelevant.
        while question.applies_to(&known) && known.answer_text(question).is_none() {
            write!(out, "{} ", question.text())?;
            out.flush()?;
            let mut line = String::new();
            if input.read_line(&mut line)? == 0 {
                writeln!(out)?;
                return Ok(known);
            }
            if line.trim().is_empty() {
                break;
            }
            match known.answer(question, line.trim()) {
                Ok(answered) => known = answered,
                Err(error) => writeln!(out, "{error}")?,
            }
        }
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the answers and the prompts that were written.
    fn prompt_until_done(answers: &str) -> (Answers, String) {
        let mut out = Vec::new();
        let known = prompt(Answers::default(), &mut answers.as_bytes(), &mut out).unwrap();
        (known, String::from_utf8(out).unwrap())
    }

    #[test]
    fn an_empty_line_skips_the_question() {
        let (known, prompts) = prompt_until_done("yes\n\nfar\n");
        assert_eq!(
            known,
            Answers::default().answer(Question::Transient, "yes").unwrap().answer(Question::Purpose, "far").unwrap()
        );
        assert!(
            prompts.contains(Question::Idempotent.text()) && prompts.ends_with("(a number, like 10k) \n"),
            "{prompts}"
        );
    }

    #[test]
    fn an_invalid_answer_repeats_the_question() {
        let (known, prompts) = prompt_until_done("maybe\nno\n");
        assert_eq!(known.answer_text(Question::Transient).as_deref(), Some("no"));
        assert!(prompts.contains("invalid value `maybe`; expected yes or no\nIs the error"), "{prompts}");
    }

    #[test]
    fn a_decisive_answer_ends_the_prompts() {
        let (_, prompts) = prompt_until_done("no\nyes\nfar\n");
        assert_eq!(prompts, format!("{} ", Question::Transient.text()));
    }
}
