"""The methods: one module each; see `prplugin.methods.base` for what a method provides."""
