use super::panel::{MARGIN, Parts, Size, WIDTH, key, panel, zoomable};
use super::xml::Element;
use crate::plot::figure::{Figure, Hue, Series};
use crate::plot::text::wrap;

#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    pub title: String,
    /// Shown in a monospace font: a policy, a command.
    pub subject: String,
    /// Notes on the figures, one per paragraph.
    pub remarks: Vec<String>,
}

/// Characters per line in the monospace font, and approximately in the other.
const SUBJECT_COLUMNS: usize = 98;
const REMARK_COLUMNS: usize = 112;
const LINE: f64 = 17.0;

/// Renders figures below each other as one SVG document.
pub fn document(page: &Page, figures: &[Figure]) -> String {
    let mut y = MARGIN;
    let mut content = Vec::new();
    let mut paragraph = |class: &str, text: &str, columns: usize| {
        for line in wrap(text, columns, "") {
            y += LINE;
            let element = Element::new("text").set("class", class).px("x", MARGIN).px("y", y);
            content.push(element.text(&line));
        }
    };
    paragraph("code", &page.subject, SUBJECT_COLUMNS);
    for remark in &page.remarks {
        paragraph("quiet", remark, REMARK_COLUMNS);
    }
    let shared = shared_key(figures);
    if let Some(series) = &shared {
        let (entries, height) = key(series, y, WIDTH);
        content.extend(entries);
        y += height;
    }
    let parts = Parts { legend: shared.is_none(), ..Parts::ALL };
    for figure in figures {
        y += MARGIN;
        let (group, field) = panel(figure, y, Size::USUAL, parts);
        content.push(group);
        y = field.end();
    }
    let described = figures.iter().map(|figure| &figure.description);
    let description: Vec<&str> =
        [&page.subject].into_iter().chain(&page.remarks).chain(described).map(String::as_str).collect();
    root([WIDTH, y + MARGIN], &page.title, &description.join("\n"), &content)
}

/// Renders one figure as a small SVG document, for a column of text.
pub fn small(figure: &Figure) -> String {
    let (group, field) = panel(figure, MARGIN / 2.0, Size::SMALL, Parts::ALL);
    root([Size::SMALL.width, field.end() + MARGIN / 2.0], &figure.title, &figure.description, &[group])
}

/// Returns the text of a document with this content.
fn root([width, height]: [f64; 2], title: &str, description: &str, content: &[Element]) -> String {
    let root = Element::new("svg")
        .set("xmlns", "http://www.w3.org/2000/svg")
        .set("class", "stagger")
        .set("viewBox", format!("0 0 {width} {height}"))
        .px("width", width)
        .px("height", height)
        .set("role", "img")
        .set("aria-labelledby", "stagger-title stagger-description")
        .child(&Element::new("title").set("id", "stagger-title").text(title))
        .child(&Element::new("desc").set("id", "stagger-description").text(description))
        .child(&Element::new("style").text(&sheet()))
        .child(&Element::new("rect").set("class", "background").set("width", "100%").set("height", "100%"))
        .children(content);
    format!("{root}")
}

/// Returns the named series of several figures with the same axes, each name once: one legend serves all. `None` if the
/// figures differ in their axes, or there is only one.
fn shared_key(figures: &[Figure]) -> Option<Vec<Series>> {
    let [first, rest @ ..] = figures else { return None };
    let labels = |figure: &Figure| (figure.x.label.clone(), figure.y.label.clone());
    if rest.is_empty() || rest.iter().any(|figure| labels(figure) != labels(first)) {
        return None;
    }
    let mut out: Vec<Series> = Vec::new();
    for figure in figures {
        let known: Vec<Option<String>> = out.iter().map(|series| series.name.clone()).collect();
        let is_new = |series: &&Series| series.name.is_some() && !known.contains(&series.name);
        out.extend(figure.series.iter().filter(is_new).cloned());
    }
    Some(out)
}

/// Renders figures as elements of an HTML page, whose style sheet must contain that of [`sheet`]. They fill the
/// available width, and a script can zoom them. A single figure has no heading: that of its section is enough. Figures
/// with the same axes are beside each other, below one legend; others have a form for narrow screens (class `narrow`)
/// and one for all others (class `broad`).
pub fn inline(figures: &[Figure]) -> String {
    let Some(series) = shared_key(figures) else {
        let both = |figure| {
            let [broad, narrow] = [("broad", Size::USUAL), ("narrow", Size::NARROW)]
                .map(|(class, size)| element(figure, class, size, Parts { heading: figures.len() > 1, legend: true }));
            format!("<figure>\n{broad}{narrow}</figure>\n")
        };
        return figures.iter().map(both).collect();
    };
    let legend = |class: &str, width: f64| {
        let (entries, height) = key(&series, 0.0, width);
        let root = Element::new("svg")
            .set("class", format!("stagger key {class}"))
            .set("viewBox", format!("0 0 {width} {}", height.max(1.0)))
            .set("aria-hidden", "true");
        format!("{}", root.children(&entries))
    };
    let legends =
        if series.is_empty() { String::new() } else { legend("broad", WIDTH) + &legend("narrow", Size::NARROW.width) };
    let panels: String = figures
        .iter()
        .map(|figure| {
            format!("<figure>\n{}</figure>\n", element(figure, "", Size::NARROW, Parts { legend: false, ..Parts::ALL }))
        })
        .collect();
    format!("{legends}<div class=\"multiples\">\n{panels}</div>\n")
}

/// Renders one figure as an element of an HTML page.
fn element(figure: &Figure, class: &str, size: Size, parts: Parts) -> String {
    let (group, field) = panel(figure, 0.0, size, parts);
    let root = Element::new("svg")
        .set("class", format!("stagger {class}").trim_end())
        .set("viewBox", format!("0 0 {} {}", size.width, field.end()))
        .set("role", "img")
        .set("aria-label", format!("{}: {}", figure.title, figure.description))
        .child(&zoomable(group, figure, &field));
    format!("{root}")
}

/// The colors of everything but series, on a white and on a dark page: background, text, secondary text, rules.
const LIGHT: [&str; 4] = ["#ffffff", "#1c2128", "#59636e", "#d8dee4"];
const DARK: [&str; 4] = ["#0d1117", "#e6edf3", "#9198a1", "#2b323b"];

/// Returns the style sheet of every document: light, and dark if the reader prefers it.
///
/// Colors are literal, not custom properties: many SVG viewers do not support those.
pub fn sheet() -> String {
    let mut out = String::from(
        "\n.stagger text{font-family:system-ui,-apple-system,Segoe UI,Roboto,DejaVu Sans,sans-serif;font-size:12px}\n\
         .stagger .heading{font-size:14px;font-weight:600}\n\
         .stagger .code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace}\n\
         .stagger .line{fill:none;stroke-linejoin:round;stroke-linecap:butt}\n\
         .stagger .band{stroke:none;fill-opacity:.2}\n\
         .stagger .bar{stroke:none;fill-opacity:.85}\n\
         .stagger .rule{stroke-width:1}\n",
    );
    out.push_str(&colors(LIGHT, |hue| hue.on_light));
    out.push_str(&format!("@media (prefers-color-scheme:dark){{\n{}}}\n", colors(DARK, |hue| hue.on_dark)));
    out
}

fn colors([background, text, quiet, rule]: [&str; 4], of: fn(&Hue) -> &'static str) -> String {
    let mut out = format!(
        ".stagger .background{{fill:{background}}}\n.stagger text{{fill:{text}}}\n\
         .stagger text.quiet{{fill:{quiet}}}\n.stagger .rule{{stroke:{rule}}}\n\
         .stagger .axis{{stroke:{quiet}}}\n"
    );
    for hue in Hue::ALL {
        let (class, color) = (hue.class, of(&hue));
        out.push_str(&format!(".stagger .{class}{{stroke:{color};fill:{color}}}\n"));
    }
    // After the hues, to override their fill and stroke.
    out.push_str(".stagger .line{fill:none}\n.stagger .band,.stagger .bar{stroke:none}\n");
    out
}

#[cfg(test)]
mod tests {
    use roxmltree::{Document, Node};

    use super::*;
    use crate::plot::figure::Hue;
    use crate::plot::samples::{band, everything};
    use crate::plot::scale::Spacing;

    fn page(subject: &str) -> Page {
        Page { title: "A title".to_owned(), subject: subject.to_owned(), remarks: vec!["a remark".to_owned()] }
    }

    fn everywhere() -> String {
        let figures = [everything(6, Spacing::Linear), everything(6, Spacing::Log), band(&[1.0])];
        document(&page("constant 1s"), &figures)
    }

    fn texts(parsed: &Document<'_>) -> Vec<String> {
        let is_text = |node: &Node<'_, '_>| node.has_tag_name(("http://www.w3.org/2000/svg", "text"));
        let text = |node: Node<'_, '_>| node.text().unwrap_or_default().to_owned();
        parsed.descendants().filter(is_text).map(text).collect()
    }

    #[test]
    fn figures_are_below_each_other_without_a_gap() {
        let height = |figures: usize| {
            let svg = document(&page("constant 1s"), &vec![everything(2, Spacing::Linear); figures]);
            let parsed = Document::parse(&svg).unwrap();
            parsed.root_element().attribute("height").unwrap().parse::<f64>().unwrap()
        };
        assert!((height(4) - height(3) - (height(3) - height(2))).abs() < 1e-6, "{}", height(4));
    }

    #[test]
    fn the_document_is_well_formed_and_self_contained() {
        let svg = everywhere();
        Document::parse(&svg).unwrap();
        for outside in ["href", "url(", "@import", "<script", "<image", "<foreignObject"] {
            assert!(!svg.contains(outside), "{outside}");
        }
        assert_eq!(svg.matches("http").count(), 1, "the name of the SVG namespace, and nothing else");
    }

    #[test]
    fn the_same_figures_give_the_same_bytes() {
        assert_eq!(everywhere(), everywhere());
    }

    #[test]
    fn a_small_document_is_within_its_width() {
        let svg = small(&everything(4, Spacing::Linear));
        let parsed = Document::parse(&svg).unwrap();
        let width: f64 = parsed.root_element().attribute("width").unwrap().parse().unwrap();
        assert!(width < 500.0, "{width}");
        for node in parsed.descendants() {
            for name in ["x", "cx", "x2"] {
                if let Some(Ok(value)) = node.attribute(name).map(str::parse::<f64>) {
                    assert!((0.0..=width).contains(&value), "{name}={value} of {}", node.tag_name().name());
                }
            }
        }
    }

    #[test]
    fn text_is_escaped() {
        let hostile = "</text><script>alert('&amp;\"')</script>";
        let mut figure = band(&[1.0, 2.0]);
        figure.title = hostile.to_owned();
        figure.series[0].name = Some(hostile.to_owned());
        let svg = document(&page("constant"), &[figure]);
        let parsed = Document::parse(&svg).unwrap();
        assert_eq!(texts(&parsed).iter().filter(|text| *text == hostile).count(), 2);
        assert!(!parsed.descendants().any(|node| node.tag_name().name() == "script"));
    }

    #[test]
    fn the_text_alternative_describes_the_figures() {
        let svg = everywhere();
        let parsed = Document::parse(&svg).unwrap();
        let root = parsed.root_element();
        let named = root.attribute("aria-labelledby").unwrap();
        let labels: Vec<&str> = named
            .split(' ')
            .map(|id| root.children().find(|node| node.attribute("id") == Some(id)).unwrap().text().unwrap())
            .collect();
        assert_eq!(labels[0], "A title");
        for part in ["constant 1s", "a remark", "Every shape."] {
            assert!(labels[1].contains(part), "{part} is not in {}", labels[1]);
        }
    }

    #[test]
    fn every_color_has_a_light_and_a_dark_variant() {
        let sheet = sheet();
        let (light, dark) = sheet.split_once("@media (prefers-color-scheme:dark)").unwrap();
        for hue in Hue::ALL {
            assert!(light.contains(&format!(".{}{{stroke:{}", hue.class, hue.on_light)));
            assert!(dark.contains(&format!(".{}{{stroke:{}", hue.class, hue.on_dark)));
        }
    }

    #[test]
    fn lines_of_one_plot_have_different_dashes() {
        let mut dashes: Vec<&str> = (0..6).map(|n| Hue::nth(n).dash).collect();
        dashes.sort_unstable();
        dashes.dedup();
        assert_eq!(dashes.len(), 6);
    }

    #[test]
    fn all_elements_are_within_the_page() {
        let svg = everywhere();
        let parsed = Document::parse(&svg).unwrap();
        let height: f64 = parsed.root_element().attribute("height").unwrap().parse().unwrap();
        for node in parsed.descendants() {
            for (name, limit) in [("x", WIDTH), ("cx", WIDTH), ("x2", WIDTH), ("y", height), ("cy", height)] {
                if let Some(Ok(value)) = node.attribute(name).map(str::parse::<f64>) {
                    assert!((0.0..=limit).contains(&value), "{name}={value} of {}", node.tag_name().name());
                }
            }
            for pair in node.attribute("points").into_iter().flat_map(str::split_whitespace) {
                let (x, y) = pair.split_once(',').unwrap();
                let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
                assert!((0.0..=WIDTH).contains(&x) && (0.0..=height).contains(&y), "{pair}");
            }
        }
    }

    #[test]
    fn a_series_with_one_position_is_wide_enough_to_see() {
        let svg = document(&page("constant"), &[everything(1, Spacing::Linear)]);
        let parsed = Document::parse(&svg).unwrap();
        for drawn in parsed.descendants().filter_map(|node| node.attribute("points")) {
            let xs = drawn.split_whitespace().filter_map(|pair| pair.split_once(',')).map(|(x, _)| x);
            let xs: Vec<f64> = xs.map(|x| x.parse().unwrap()).collect();
            let width = xs.iter().copied().fold(f64::MIN, f64::max) - xs.iter().copied().fold(f64::MAX, f64::min);
            assert!(width >= 20.0, "{drawn}");
        }
    }

    #[test]
    fn a_long_policy_wraps_at_spaces() {
        let words = vec!["max-attempts=5"; 30];
        let svg = document(&page(&words.join(" ")), &[]);
        let parsed = Document::parse(&svg).unwrap();
        let lines: Vec<String> = texts(&parsed);
        assert!(lines.iter().all(|line| line.len() <= SUBJECT_COLUMNS));
        assert_eq!(lines[..lines.len() - 1].join(" ").split(' ').collect::<Vec<_>>(), words);
    }
}
