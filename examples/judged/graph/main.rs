//! Distances in a graph from many starts, two threads over one graph that nobody changes.
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;

struct Graph {
    first_edge: Vec<u32>,
    targets: Vec<u32>,
}

impl Graph {
    fn random(nodes: u32, degree: u32) -> Self {
        let mut first_edge = Vec::with_capacity(nodes as usize + 1);
        let mut targets = Vec::with_capacity((nodes * degree) as usize);
        let mut x = 2463534242u32;
        for node in 0..nodes {
            first_edge.push(targets.len() as u32);
            targets.push((node + 1) % nodes);
            for _ in 0..(node % degree) {
                x ^= x << 13;
                x ^= x >> 17;
                x ^= x << 5;
                targets.push(x % nodes);
            }
        }
        first_edge.push(targets.len() as u32);
        Graph { first_edge, targets }
    }

    fn nodes(&self) -> usize {
        self.first_edge.len() - 1
    }

    fn neighbours(&self, node: u32) -> &[u32] {
        let from = self.first_edge[node as usize] as usize;
        let to = self.first_edge[node as usize + 1] as usize;
        &self.targets[from..to]
    }
}

struct Search {
    distance: Vec<u32>,
    queue: VecDeque<u32>,
}

impl Search {
    fn new(nodes: usize) -> Self {
        Search { distance: vec![u32::MAX; nodes], queue: VecDeque::with_capacity(nodes) }
    }

    /// Computes the sum of all distances from `start`.
    fn run(&mut self, graph: &Graph, start: u32) -> u64 {
        self.distance.fill(u32::MAX);
        self.queue.clear();
        self.distance[start as usize] = 0;
        self.queue.push_back(start);
        let mut sum = 0;
        while let Some(node) = self.queue.pop_front() {
            let d = self.distance[node as usize];
            sum += u64::from(d);
            for &to in graph.neighbours(node) {
                if self.distance[to as usize] == u32::MAX {
                    self.distance[to as usize] = d + 1;
                    self.queue.push_back(to);
                }
            }
        }
        sum
    }
}

fn main() {
    let starts: u32 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(8);
    let graph = Arc::new(Graph::random(4000, 6));
    let threads: Vec<_> = (0..2u32)
        .map(|part| {
            let graph = Arc::clone(&graph);
            thread::spawn(move || {
                let mut search = Search::new(graph.nodes());
                let mut sum = 0;
                for i in (part..starts).step_by(2) {
                    sum += search.run(&graph, i * 37 % graph.nodes() as u32);
                }
                sum
            })
        })
        .collect();
    let sum: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
    println!("sum of distances {sum}");
}
