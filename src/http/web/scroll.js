// Keeps a scrolled element at its end until the user scrolls up with the wheel, a finger, a key or
// the scroll bar. A scroll event alone does not release it, because changes of the layout also
// cause such events.

const NEAR_PX = 60;
/** A scroll bar or the focus that moves the view by less does not release it. */
const MOVED_PX = 4;
/** Time after an input of the user in which a scroll event is its effect. */
const EFFECT_MS = 500;
const UP_KEYS = ["PageUp", "ArrowUp", "Home"];

export class EndFollower {
  /**
   * `hooks`: `isWhole()` returns whether the end of the element is drawn; `toEnd()` shows it;
   * `changed()` is called when following begins or ends.
   */
  constructor(scroller, hooks) {
    Object.assign(this, { scroller, hooks, isOn: true, top: 0, movedMs: -Infinity, upMs: -Infinity, isHeld: false, touchY: 0 });
    const listen = (name, does) => scroller.addEventListener(name, does, { passive: true });
    listen("wheel", ({ deltaY, target, ctrlKey }) => !ctrlKey && deltaY !== 0 && this.moves(target, deltaY < 0));
    listen("touchstart", ({ touches }) => (this.touchY = touches[0].clientY));
    listen("touchmove", ({ touches, target }) => {
      const y = touches[0].clientY;
      // The finger moves down, and the text with it.
      if (y !== this.touchY) this.moves(target, y > this.touchY);
      this.touchY = y;
    });
    listen("keydown", ({ key, target }) => (key === "End" && target === scroller ? hooks.toEnd() : this.moves(target, UP_KEYS.includes(key))));
    listen("focusin", ({ target }) => target !== scroller && target.matches(":focus-visible") && (this.movedMs = performance.now()));
    // The scroll bar is part of the element.
    listen("pointerdown", ({ pointerType }) => (this.isHeld = pointerType === "mouse"));
    for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => this.letGo(), true);
    addEventListener("pointermove", ({ buttons }) => buttons === 0 && this.letGo(), true);
    listen("scroll", () => this.scrolled());
  }

  get below() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight;
  }

  /** Takes an input that scrolls up or down. An inner element may scroll instead. */
  moves(target, isUp) {
    for (let node = target; isUp && node && node !== this.scroller; node = node.parentElement) if (node.scrollTop > 0) return;
    this.movedMs = performance.now();
    this.upMs = isUp ? this.movedMs : -Infinity;
    if (isUp && this.scroller.scrollTop > 0) this.set(false);
  }

  /** Ends a press with the next frame, because the scroll event of a drag may follow the release. */
  letGo() {
    if (!this.isHeld) return;
    requestAnimationFrame(() => {
      this.isHeld = false;
      this.movedMs = performance.now();
      this.keep();
    });
  }

  scrolled() {
    const { scrollTop } = this.scroller, { below } = this;
    const now = performance.now(), isUp = scrollTop < this.top, isMoving = this.isHeld || now - this.movedMs < EFFECT_MS;
    this.top = scrollTop;
    if (isUp && isMoving && below > MOVED_PX) this.set(false);
    // The event of an earlier move to the end may follow an input that scrolls up.
    else if (now - this.upMs >= EFFECT_MS && this.hooks.isWhole() && below < (isUp ? 1 : NEAR_PX) && !(isUp && isMoving)) this.set(true);
  }

  set(isOn) {
    if (this.isOn === isOn) return;
    this.isOn = isOn;
    this.hooks.changed();
  }

  /** Scrolls to the end, unless the user has scrolled up or holds the mouse button. */
  keep() {
    if (!this.isOn || this.isHeld) return;
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.top = this.scroller.scrollTop;
  }
}
