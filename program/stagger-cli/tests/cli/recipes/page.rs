//! The code blocks of the page.

use std::fs;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/recipes.md");

#[derive(Debug)]
struct Block {
    recipe: String,
    language: String,
    text: String,
}

fn blocks() -> Vec<Block> {
    let page = fs::read_to_string(PAGE).expect("the page is read");
    let (mut blocks, mut recipe, mut open) = (Vec::new(), String::new(), None::<Block>);
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                open = Some(Block { recipe: recipe.clone(), language: language.to_owned(), text: String::new() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.text += &format!("{line}\n"),
            (None, None) => {
                if let Some(heading) = line.strip_prefix("## ") {
                    heading.clone_into(&mut recipe);
                }
            }
        }
    }
    assert!(open.is_none(), "each block ends");
    blocks
}

/// Returns the code blocks of a recipe.
#[track_caller]
pub(super) fn code(recipe: &str) -> Vec<String> {
    let of_recipe = blocks().into_iter().filter(|block| block.recipe == recipe);
    let code: Vec<_> = of_recipe.map(|block| block.text).collect();
    assert!(!code.is_empty(), "the page has no recipe {recipe:?}");
    code
}

/// Returns the text with what a test needs in other places. What is replaced must be there.
#[track_caller]
pub(super) fn with(text: &str, replacements: &[(&str, &str)]) -> String {
    replacements.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from:?} is not in {text:?}");
        text.replace(from, to)
    })
}

/// A block that is added needs a test, which is then named here.
#[test]
fn every_block_has_a_test() {
    let found: Vec<_> = blocks().into_iter().map(|block| format!("{}: {}", block.recipe, block.language)).collect();
    let tested = [
        "Cron: crontab",
        "systemd: ini",
        "systemd: ini",
        "systemd: ini",
        "Docker: dockerfile",
        "Compose: yaml",
        "Kubernetes: yaml",
        "Kubernetes: yaml",
        "GitHub Actions and GitLab CI: yaml",
        "GitHub Actions and GitLab CI: yaml",
        "git: sh",
        "rsync: sh",
        "psql: sh",
        "apt: sh",
        "aws: sh",
        "aws: sh",
        "kubectl: sh",
        "kubectl: sh",
        "nginx: nginx",
        "HAProxy: haproxy",
    ];
    assert_eq!(found, tested);
}
