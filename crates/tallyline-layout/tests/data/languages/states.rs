// What async functions keep while they wait.
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

pub struct Step(pub u8);

impl Future for Step {
    type Output = u32;
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u32> {
        if self.0 == 0 {
            return Poll::Ready(7);
        }
        self.0 -= 1;
        Poll::Pending
    }
}

pub async fn one(first: u64, flag: bool) -> u32 {
    let kept = [first as u8; 100];
    let a = Step(1).await;
    let wide = u128::from(a);
    let b = Step(if kept[1] == 3 { 2 } else { 3 }).await;
    u32::from(kept[3]) + a + b + wide as u32 + first as u32
}

pub async fn outer(name: String) -> usize {
    let x = one(3, true).await;
    let y = one(name.len() as u64, false).await;
    name.len() + (x + y) as usize
}

fn main() {
    let mut future = Box::pin(outer("x".into()));
    let mut context = Context::from_waker(Waker::noop());
    while future.as_mut().poll(&mut context).is_pending() {}
}
