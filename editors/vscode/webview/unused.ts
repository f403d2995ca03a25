// Parts of the console that have no use in the editor: the phone's code needs an address, and the
// extension host notifies.

export class Phone {
  async show(): Promise<void> {}
}

export class Notifier {
  begin(): void {}
  changed(): void {}
}
