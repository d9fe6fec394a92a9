use std::io::{self, BufRead, Write};

use stagger_sim::advise::{Answers, Question};

use crate::error::CliError;

/// Asks what is not known and still matters. An empty line leaves a question open, and the end of the input all of them.
///
/// # Errors
/// The questions cannot be written, or the answers not be read.
pub(super) fn ask(known: Answers, input: &mut impl BufRead, out: &mut impl Write) -> Result<Answers, CliError> {
    asked(known, input, out).map_err(|error| CliError::io("cannot ask; say it with flags, and --no-ask", error))
}

fn asked(mut known: Answers, input: &mut impl BufRead, out: &mut impl Write) -> io::Result<Answers> {
    for question in Question::ALL {
        // What has been answered meanwhile may have ended it.
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

    /// What is known in the end, and what was said.
    fn asked(answers: &str) -> (Answers, String) {
        let mut out = Vec::new();
        let known = ask(Answers::default(), &mut answers.as_bytes(), &mut out).unwrap();
        (known, String::from_utf8(out).unwrap())
    }

    #[test]
    fn an_empty_line_leaves_a_question_open_and_the_next_is_asked() {
        let (known, said) = asked("yes\n\nfar\n");
        assert_eq!(
            known,
            Answers::default().answer(Question::Transient, "yes").unwrap().answer(Question::Purpose, "far").unwrap()
        );
        assert!(said.contains(Question::Idempotent.text()) && said.ends_with("(a number, like 10k) \n"), "{said}");
    }

    #[test]
    fn what_is_not_understood_is_asked_again() {
        let (known, said) = asked("maybe\nno\n");
        assert_eq!(known.answer_text(Question::Transient).as_deref(), Some("no"));
        assert!(said.contains("invalid value `maybe`; expected yes or no\nIs the error"), "{said}");
    }

    #[test]
    fn what_ends_it_ends_the_questions() {
        let (_, said) = asked("no\nyes\nfar\n");
        assert_eq!(said, format!("{} ", Question::Transient.text()));
    }
}
