# train a net
epochs = 30
batch_size = 32
for epoch in range(epochs): train(batch_size)
