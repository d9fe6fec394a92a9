use super::document::sheet;
use super::panel::{MARGIN, WIDTH};
use super::xml::{Element, Pixels};

/// A map of shares from 0 to 1 over two axes.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatMap {
    pub title: String,
    /// Text alternative.
    pub description: String,
    /// The names of the horizontal and the vertical axis.
    pub axes: [String; 2],
    /// The labels of the columns.
    pub across: Vec<String>,
    /// The labels of the rows, the lowest first.
    pub up: Vec<String>,
    /// Rows of cells, the lowest first.
    pub cells: Vec<Vec<f64>>,
    /// What shares of 0 and 1 mean.
    pub legend: [String; 2],
}

const HEADING: f64 = 68.0;
const GUTTER: f64 = 74.0;
const CELL_HEIGHT: f64 = 20.0;
/// Labels that fit along the horizontal axis.
const LABELS: usize = 10;

impl HeatMap {
    /// Renders the map as an element of an HTML page, whose style sheet must contain that of [`sheet`].
    pub fn inline(&self) -> String {
        self.root().children(&self.drawn()).to_string()
    }

    /// Renders the map as a document.
    pub fn document(&self) -> String {
        let root =
            self.root().set("xmlns", "http://www.w3.org/2000/svg").px("width", WIDTH).px("height", self.height());
        let background = Element::new("rect").set("class", "background").set("width", "100%").set("height", "100%");
        root.child(&Element::new("style").text(&sheet())).child(&background).children(&self.drawn()).to_string()
    }

    fn root(&self) -> Element {
        Element::new("svg")
            .set("class", "stagger")
            .set("viewBox", format!("0 0 {WIDTH} {}", Pixels(self.height())))
            .set("role", "img")
            .set("aria-label", format!("{}: {}", self.title, self.description))
    }

    fn height(&self) -> f64 {
        HEADING + CELL_HEIGHT * self.cells.len() as f64 + 44.0 + MARGIN
    }

    fn drawn(&self) -> Vec<Element> {
        let text = |class: &str, anchor: &str, x: f64, y: f64, text: &str| {
            let element = Element::new("text").set("class", class).set("text-anchor", anchor);
            element.px("x", x).px("y", y).text(text)
        };
        let (left, rows) = (MARGIN + GUTTER, self.cells.len());
        let width = (WIDTH - MARGIN - left) / self.across.len().max(1) as f64;
        let bottom = HEADING + CELL_HEIGHT * rows as f64;
        let mut out = vec![text("heading", "start", MARGIN, MARGIN, &self.title)];
        let mut x = MARGIN;
        for (share, name) in [0.0, 1.0].into_iter().zip(&self.legend) {
            out.extend(cell(x, MARGIN + 12.0, 14.0, 14.0, share));
            out.push(text("", "start", x + 20.0, MARGIN + 24.0, name));
            x += 44.0 + 7.0 * name.chars().count() as f64;
        }
        out.push(text("quiet", "start", MARGIN, HEADING - 8.0, &self.axes[1]));
        for (nth, (label, shares)) in self.up.iter().zip(&self.cells).enumerate() {
            let y = bottom - CELL_HEIGHT * (nth + 1) as f64;
            out.push(text("quiet", "end", left - 8.0, y + 14.0, label));
            let cells = shares.iter().enumerate();
            out.extend(
                cells.flat_map(|(n, share)| cell(left + width * n as f64, y, width - 1.0, CELL_HEIGHT - 1.0, *share)),
            );
        }
        let every = self.across.len().div_ceil(LABELS).max(1);
        for (nth, label) in self.across.iter().enumerate().step_by(every) {
            out.push(text("quiet", "middle", left + width * (nth as f64 + 0.5), bottom + 16.0, label));
        }
        out.push(text("quiet", "end", WIDTH - MARGIN, bottom + 36.0, &self.axes[0]));
        out
    }
}

/// Draws a cell: vermilion to the share, on a light ground. The style sheet sets `fill-opacity`, so that the strength
/// is in `opacity`.
fn cell(x: f64, y: f64, width: f64, height: f64, share: f64) -> [Element; 2] {
    let rect = |class: &str, opacity: f64| {
        let rect = Element::new("rect").set("class", class).px("x", x).px("y", y);
        rect.px("width", width).px("height", height).set("opacity", Pixels(opacity).to_string())
    };
    [rect("sky bar", 0.25), rect("vermilion bar", 0.9 * share.clamp(0.0, 1.0))]
}

#[cfg(test)]
mod tests {
    use roxmltree::Document;

    use super::*;

    #[test]
    fn a_cell_is_as_strong_as_its_share() {
        let strengths = [0.0, 0.5, 1.0].map(|share| {
            let [_, front] = cell(0.0, 0.0, 9.0, 9.0, share);
            let text = front.to_string();
            // The style sheet would override `fill-opacity`.
            assert!(sheet().contains("fill-opacity") && !text.contains("fill-opacity"), "{text}");
            Document::parse(&text).unwrap().root_element().attribute("opacity").map(str::to_owned)
        });
        assert_eq!(strengths, ["0", "0.45", "0.9"].map(|strength| Some(strength.to_owned())));
    }

    #[test]
    fn every_cell_is_within_the_picture() {
        for [columns, rows] in [[1, 1], [20, 20], [3, 40]] {
            let labels = |count: usize| (0..count).map(|nth| format!("<{nth}>")).collect::<Vec<_>>();
            let map = HeatMap {
                title: "A".to_owned(),
                description: "B".to_owned(),
                axes: ["x".to_owned(), "y".to_owned()],
                across: labels(columns),
                up: labels(rows),
                cells: vec![vec![0.5; columns]; rows],
                legend: ["no".to_owned(), "yes".to_owned()],
            };
            let text = map.document();
            let parsed = Document::parse(&text).unwrap();
            let number =
                |node: roxmltree::Node<'_, '_>, name| node.attribute(name).and_then(|text| text.parse::<f64>().ok());
            let [width, height] = ["width", "height"].map(|name| number(parsed.root_element(), name).unwrap());
            let cells: Vec<_> =
                parsed.descendants().filter(|node| node.attribute("class") == Some("vermilion bar")).collect();
            assert_eq!(cells.len(), columns * rows + 2);
            for node in cells {
                let [x, y, w, h] = ["x", "y", "width", "height"].map(|name| number(node, name).unwrap());
                assert!(x >= 0.0 && x + w <= width && y >= 0.0 && y + h <= height, "{x} {y}");
            }
        }
    }
}
