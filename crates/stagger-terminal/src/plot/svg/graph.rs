use super::document::sheet;
use super::panel::{MARGIN, WIDTH};
use super::xml::{Element, Pixels};

/// A graph whose nodes are boxes in layers from left to right, and whose links are arrows with a label.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    pub title: String,
    /// Text alternative.
    pub description: String,
    pub nodes: Vec<GraphNode>,
    pub links: Vec<GraphLink>,
}

/// A box with a title and lines of text.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphNode {
    pub layer: usize,
    pub title: String,
    pub lines: Vec<String>,
    /// Whether its border is that of a problem.
    pub is_marked: bool,
}

/// An arrow from one node to another, by their numbers. Its width grows with the logarithm of its weight.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphLink {
    pub from: usize,
    pub to: usize,
    pub label: String,
    pub weight: f64,
}

const BOX_WIDTH: f64 = 156.0;
const BOX_GAP: f64 = 26.0;
/// The least space between layers: for arrows and their labels.
const LAYER_GAP: f64 = 72.0;
const LINE: f64 = 16.0;
const HEADING: f64 = 30.0;
/// Height of the lane of an arrow that passes other layers, below all boxes.
const LANE: f64 = 24.0;
/// Letters of a title and of a line that fit into a box.
const LETTERS: [usize; 2] = [15, 21];

/// The corner and the size of a box.
#[derive(Clone, Copy)]
struct Place {
    x: f64,
    y: f64,
    height: f64,
}

impl Graph {
    /// Renders the graph as an element of an HTML page, whose style sheet must contain that of [`sheet`].
    pub fn inline(&self) -> String {
        self.root().children(&self.drawn()).to_string()
    }

    /// Renders the graph as a document.
    pub fn document(&self) -> String {
        let [width, height] = self.size();
        let root = self.root().set("xmlns", "http://www.w3.org/2000/svg").px("width", width).px("height", height);
        let background = Element::new("rect").set("class", "background").set("width", "100%").set("height", "100%");
        format!("{}", root.child(&Element::new("style").text(&sheet())).child(&background).children(&self.drawn()))
    }

    fn root(&self) -> Element {
        let [width, height] = self.size();
        Element::new("svg")
            .set("class", "stagger")
            .set("viewBox", format!("0 0 {} {}", Pixels(width), Pixels(height)))
            .set("role", "img")
            .set("aria-label", format!("{}: {}", self.title, self.description))
    }

    fn layers(&self) -> usize {
        self.nodes.iter().map(|node| node.layer).max().unwrap_or(0) + 1
    }

    fn size(&self) -> [f64; 2] {
        let layers = self.layers() as f64;
        let width = (2.0 * MARGIN + layers * BOX_WIDTH + (layers - 1.0) * LAYER_GAP).max(WIDTH);
        let column = |layer| self.nodes.iter().filter(move |node| node.layer == layer);
        let heights = (0..self.layers()).map(|layer| column(layer).map(|node| height(node) + BOX_GAP).sum::<f64>());
        let lanes = self.links.iter().filter(|link| self.passes_layers(link)).count() as f64;
        [width, HEADING + 2.0 * MARGIN + heights.fold(0.0, f64::max) - BOX_GAP + lanes * LANE]
    }

    /// Returns whether a link leads past other layers, where boxes may be in its way.
    fn passes_layers(&self, link: &GraphLink) -> bool {
        self.nodes[link.to].layer > self.nodes[link.from].layer + 1
    }

    /// Returns the places of the nodes: each layer is a column, centered.
    fn places(&self) -> Vec<Place> {
        let [width, total] = self.size();
        let total = total - LANE * self.links.iter().filter(|link| self.passes_layers(link)).count() as f64;
        let layers = self.layers();
        let step = if layers > 1 { (width - 2.0 * MARGIN - BOX_WIDTH) / (layers - 1) as f64 } else { 0.0 };
        let mut places = vec![Place { x: 0.0, y: 0.0, height: 0.0 }; self.nodes.len()];
        for layer in 0..layers {
            let of_layer = || self.nodes.iter().enumerate().filter(move |(_, node)| node.layer == layer);
            let used = of_layer().map(|(_, node)| height(node) + BOX_GAP).sum::<f64>() - BOX_GAP;
            let mut y = HEADING + f64::midpoint(total - HEADING, -used);
            for (nth, node) in of_layer() {
                places[nth] = Place { x: MARGIN + layer as f64 * step, y, height: height(node) };
                y += height(node) + BOX_GAP;
            }
        }
        places
    }

    fn drawn(&self) -> Vec<Element> {
        let places = self.places();
        let heading = Element::new("text").set("class", "heading").px("x", MARGIN).px("y", MARGIN + 4.0);
        let mut out = vec![heading.text(&self.title)];
        let (past, direct): (Vec<_>, Vec<_>) = self.links.iter().partition(|link| self.passes_layers(link));
        let ends = |link: &GraphLink| (places[link.from], places[link.to]);
        let lowest = self.size()[1] - MARGIN - LANE * past.len() as f64;
        let lanes = past.iter().enumerate().map(|(nth, link)| (*link, lowest + LANE * (nth + 1) as f64));
        out.extend(direct.iter().flat_map(|link| arrow(link, ends(link).0, ends(link).1)));
        out.extend(lanes.clone().flat_map(|(link, y)| lane(link, ends(link).0, ends(link).1, y)));
        out.extend(self.nodes.iter().zip(&places).flat_map(|(node, place)| boxed(node, *place)));
        out.extend(direct.iter().flat_map(|link| {
            let [x1, y1, x2, y2] = sides(ends(link).0, ends(link).1);
            label(link, f64::midpoint(x1, x2) - 3.0, f64::midpoint(y1, y2) - 14.0)
        }));
        out.extend(lanes.flat_map(|(link, y)| {
            let (from, to) = ends(link);
            label(link, f64::midpoint(from.x, to.x) + BOX_WIDTH / 2.0, y + 4.0)
        }));
        out
    }
}

fn height(node: &GraphNode) -> f64 {
    LINE * (node.lines.len() + 1) as f64 + 14.0
}

/// Returns the middle of the right side of a box, and of the left side of another.
fn sides(from: Place, to: Place) -> [f64; 4] {
    [from.x + BOX_WIDTH, from.y + from.height / 2.0, to.x, to.y + to.height / 2.0]
}

/// Draws an arrow from one layer to the next.
fn arrow(link: &GraphLink, from: Place, to: Place) -> [Element; 2] {
    let [x1, y1, x2, y2] = sides(from, to);
    let (head, bend) = (6.0 + width(link), (x2 - x1) / 2.0);
    // The line ends inside the head.
    let path = path(&[(x1, y1), (x1 + bend, y1), (x2 - bend, y2), (x2 - head + 1.0, y2)]);
    drawn(link, path, [(x2, y2), (x2 - head, y2 - head / 2.0), (x2 - head, y2 + head / 2.0)])
}

/// Draws an arrow that leads below all boxes, at this height.
fn lane(link: &GraphLink, from: Place, to: Place, y: f64) -> [Element; 2] {
    let head = 6.0 + width(link);
    let (x1, y1, x2, y2) = (from.x + 0.75 * BOX_WIDTH, from.y + from.height, to.x + 0.25 * BOX_WIDTH, to.y + to.height);
    let bend = 40.0;
    let path = path(&[(x1, y1), (x1, y), (x1, y), (x1 + bend, y), (x2 - bend, y), (x2 - bend, y), (x2 - bend, y)])
        + &path(&[(x2 - bend, y), (x2, y), (x2, y), (x2, y2 + head - 1.0)]);
    drawn(link, path, [(x2, y2), (x2 - head / 2.0, y2 + head), (x2 + head / 2.0, y2 + head)])
}

/// Returns a path of cubic curves through points: the start, and three for each curve.
fn path(points: &[(f64, f64)]) -> String {
    let mut out = String::new();
    for (nth, (x, y)) in points.iter().enumerate() {
        let command = match nth {
            0 => "M",
            nth if nth % 3 == 1 => "C",
            _ => ",",
        };
        out.push_str(&format!("{command}{} {}", Pixels(*x), Pixels(*y)));
    }
    out
}

fn width(link: &GraphLink) -> f64 {
    (1.5 + link.weight.max(1.0).log2()).min(9.0)
}

fn drawn(link: &GraphLink, path: String, head: [(f64, f64); 3]) -> [Element; 2] {
    let hue = if link.weight >= 1.5 { "vermilion" } else { "blue" };
    let line = Element::new("path").set("class", format!("{hue} line")).set("d", path).px("stroke-width", width(link));
    let head = head.map(|(x, y)| format!("{},{}", Pixels(x), Pixels(y)));
    [line, Element::new("polygon").set("class", hue).set("points", head.join(" "))]
}

/// Draws the label of an arrow, centered at `x` above `y`.
fn label(link: &GraphLink, x: f64, y: f64) -> [Element; 2] {
    let width = 7.6 * link.label.chars().count() as f64 + 4.0;
    let ground = Element::new("rect").set("class", "background").px("x", x - width / 2.0).px("y", y - 13.0);
    let text = Element::new("text").set("class", "heading").set("text-anchor", "middle").px("x", x).px("y", y);
    [ground.px("width", width).px("height", 18.0), text.text(&link.label)]
}

fn boxed(node: &GraphNode, place: Place) -> Vec<Element> {
    let class = if node.is_marked { "vermilion" } else { "ink" };
    let frame = |class: &str| {
        let frame = Element::new("rect").set("class", class).px("x", place.x).px("y", place.y);
        frame.px("width", BOX_WIDTH).px("height", place.height).px("rx", 6.0)
    };
    let border = frame(&format!("{class} line")).px("stroke-width", if node.is_marked { 2.5 } else { 1.5 });
    let text = |class: &str, nth: usize, text: &str| {
        let y = place.y + 5.0 + LINE * (nth + 1) as f64;
        let element = Element::new("text").set("class", class).px("x", place.x + 9.0).px("y", y);
        element.text(&fitted(text, LETTERS[nth.min(1)]))
    };
    let mut out = vec![frame("background"), border, text("heading", 0, &node.title)];
    out.extend(node.lines.iter().enumerate().map(|(nth, line)| text("quiet", nth + 1, line)));
    out
}

/// Shortens text that is longer than a box.
fn fitted(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    text.chars().take(letters - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use roxmltree::Document;

    use super::*;

    fn graph(layers: usize, wide: usize) -> Graph {
        let node = |layer: usize, nth: usize| GraphNode {
            layer,
            title: format!("service <{layer}.{nth}> with a long name"),
            lines: vec!["one".to_owned(), "two".to_owned()],
            is_marked: nth == 1,
        };
        let nodes: Vec<_> = (0..layers)
            .flat_map(|layer| (0..if layer == 0 { 1 } else { wide }).map(move |nth| node(layer, nth)))
            .collect();
        let links = (1..nodes.len()).map(|to| GraphLink { from: 0, to, label: "×27".to_owned(), weight: 27.0 });
        Graph { title: "A".to_owned(), description: "B".to_owned(), links: links.collect(), nodes }
    }

    #[test]
    fn every_box_is_within_the_picture_and_none_overlaps_another() {
        for (layers, wide) in [(1, 1), (2, 1), (4, 3), (12, 2)] {
            let graph = graph(layers, wide);
            let text = graph.document();
            let parsed = Document::parse(&text).unwrap();
            let number = |name| parsed.root_element().attribute(name).unwrap().parse::<f64>().unwrap();
            let places = graph.places();
            for (nth, a) in places.iter().enumerate() {
                assert!(a.x >= 0.0 && a.x + BOX_WIDTH <= number("width"), "{layers} {wide}");
                assert!(a.y >= HEADING && a.y + a.height <= number("height"), "{layers} {wide}: {}", a.y);
                for b in &places[nth + 1..] {
                    let is_apart = (a.x - b.x).abs() >= BOX_WIDTH || (a.y - b.y).abs() >= a.height;
                    assert!(is_apart, "{layers} {wide}");
                }
            }
        }
    }

    #[test]
    fn names_are_escaped_and_shortened() {
        let text = graph(2, 1).inline();
        let parsed = Document::parse(&text).unwrap();
        let texts: Vec<_> = parsed.descendants().filter_map(|node| node.text()).collect();
        assert!(texts.contains(&"service <0.0> …"), "{texts:?}");
    }
}
