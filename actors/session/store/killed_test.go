package store

const writerEnv = "ACPOD_STORE_WRITER"

func writer(string) {}
